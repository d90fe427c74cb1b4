value = 1234567.891
print(f"{value:,.2f}|{value:e}|{value:>15.1f}|{value!r:<14}|{42:#x}|{42:08b}|{0.256:.1%}")
print("{0[name]} {1.real} {x!s:^7}".format({"name": "n"}, 3, x="mid"))
print("%-8s|%05d|%+.1f" % ("left", 42, 3.14159), f"{'nested ' + f'{1 + 1}'!r}")
name = "x"; print(f"{name=} {len(name)=:>3}")
