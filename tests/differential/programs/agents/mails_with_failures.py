to = ["a@x.de", "nobody", "c@z.de"]
results = await asyncio.gather(*(send_mail(to=t, subject="Hi") for t in to), return_exceptions=True)
failed = {t: str(r) for t, r in zip(to, results) if isinstance(r, Exception)}
print(len(to) - len(failed), failed)
if failed:
    raise SystemExit(f"{len(failed)} mail could not be sent")
