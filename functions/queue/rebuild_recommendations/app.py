"""Rebuild the recommended reviews of shops from MySQL."""

from plaza.social.recommendations.recommend import RECOMMENDATIONS, rebuild_recommendations

handler = RECOMMENDATIONS.processor(rebuild_recommendations).lambda_handler()
