"""Rebuild the recommended reviews of shops from MySQL."""

from plaza.recommendations.recommend import RECOMMENDATIONS, rebuild_recommendations

handler = RECOMMENDATIONS.processor(rebuild_recommendations).lambda_handler()
