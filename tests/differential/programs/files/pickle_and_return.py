import pickle
from dataclasses import dataclass
from datetime import datetime
@dataclass
class Row:
    id: int
    at: datetime
data = pickle.dumps([Row(1, datetime(2025, 1, 2))])
return {"same": pickle.loads(data)[0] == Row(1, datetime(2025, 1, 2)), "text": f"{pickle.loads(data)[0].at:%d.%m.%Y}"}
