import string
def caesar(text, shift):
    low = string.ascii_lowercase
    table = str.maketrans(low + low.upper(), low[shift:] + low[:shift] + (low[shift:] + low[:shift]).upper())
    return text.translate(table)
secret = caesar("Attack at dawn!", 3)
print(secret, caesar(secret, 23), "a-b_c".translate({45: None, 95: " "}))
