from collections import OrderdDict
