# Prints every byte, halves of characters, surrogates and marks of byte order.
os.write(1, bytes(range(256)) + b"\xed\xa0\x80\xf4\x90\x80\x80\xc0\x80\xef\xbb\xbf\xff\xfe")
attempt(print, "\ud800\udfff \u2028 \u2029 \x00")
sys.stdout.reconfigure(errors="surrogatepass")
print("\ud800")
