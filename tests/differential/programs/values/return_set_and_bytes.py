return {1}, b"x"
