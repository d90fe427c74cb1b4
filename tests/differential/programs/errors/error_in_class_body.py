class Settings:
    timeout = int("ten")
