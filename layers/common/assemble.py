"""``python assemble.py LAYER``: replace the Lua scripts of Plaza by what is sent to Redis.

So a function reads one file for each script that it runs, and all functions of one build send the
same bytes.
"""

import sys
from pathlib import Path

if __name__ == "__main__":
    layer = Path(sys.argv[1])
    sys.path.insert(0, str(layer))
    sys.dont_write_bytecode = True
    from plaza.infra.redis.script_assembly import assemble_scripts

    print(f"{assemble_scripts(layer / 'plaza')} scripts in the layer")
