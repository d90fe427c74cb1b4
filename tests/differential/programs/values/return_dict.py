rows = await query(sql="select country, count(*) as n from customers group by country order by country")
return {"countries": {r["country"]: r["n"] for r in rows}, "total": sum(r["n"] for r in rows)}
