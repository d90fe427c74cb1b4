import pandas as pd
wide = pd.DataFrame({"id": [1, 2], "jan": [10, 20], "feb": [11, 21]})
long = wide.melt(id_vars="id", var_name="month", value_name="v").sort_values(["id", "month"]).reset_index(drop=True)
print(pd.concat([long, long.assign(id=9)]).tail(2), long.to_dict("list"))
