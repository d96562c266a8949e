"""Rebuild the recommended reviews of shops from MySQL."""

from plaza.recommendations.recommend import RECOMMENDATIONS

handler = RECOMMENDATIONS.handler
