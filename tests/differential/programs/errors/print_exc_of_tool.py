import traceback
try:
    await get_user(id=5)
except Exception as e:
    print(traceback.format_exc())
    print(e.__traceback__.tb_lineno, traceback.format_exception_only(e))
