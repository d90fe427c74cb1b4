# Raises an error whose class, name and module are not what they should be.
class Meta(type):
    __name__ = property(lambda cls: 1 / 0)
    __module__ = property(lambda cls: os._exit(5))
    def __instancecheck__(cls, other):
        return 1 / 0
class Evil(Exception, metaclass=Meta):
    __class__ = property(lambda self: int)
raise Evil
