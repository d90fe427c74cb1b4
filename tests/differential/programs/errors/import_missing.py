import json, does_not_exist_lib
