if True:
    import statistics as st, string
    from collections import *
return [st.mean([1, 2]), string.digits[:2], OrderedDict(a=1)]
