import base64, hashlib, hmac, zlib
data = "Zürich".encode()
print(hashlib.sha256(data).hexdigest()[:16], hashlib.md5(data, usedforsecurity=False).hexdigest()[:8])
print(base64.b64encode(data), base64.urlsafe_b64decode("Wg=="), hmac.new(b"k", data, "sha1").hexdigest()[:8], zlib.crc32(data))
