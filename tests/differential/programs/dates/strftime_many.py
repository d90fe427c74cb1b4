from datetime import datetime
d = datetime(2025, 3, 9, 7, 5, 3, 12)
print(d.strftime("%Y-%m-%d %H:%M:%S.%f|%j|%U|%W|%G-W%V|%a %A %b %B|%I%p|%%|%y"), f"{d:%d/%m/%y}", format(d.date(), "%d. %B"))
print(datetime.strptime("09 Mar 2025 07:05PM", "%d %b %Y %I:%M%p"), d.ctime())
