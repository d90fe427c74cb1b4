eval("1 +")
