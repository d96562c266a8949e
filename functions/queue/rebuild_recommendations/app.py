"""The recommended reviews of shops are read from MySQL and put in place."""

from plaza.recommendations.recommend import RECOMMENDATIONS

handler = RECOMMENDATIONS.handler
