"""``python -m rivulet join URL --token-file FILE``: what a device needs that has not the program `rivulet`."""
import sys

from ._joining import main

sys.exit(main())
