import unittest, io
def add(a, b):
    return a + b
class TestAdd(unittest.TestCase):
    def test_ok(self):
        self.assertEqual(add(1, 2), 3)
    def test_bad(self):
        with self.assertRaises(TypeError):
            add(1, "2")
stream = io.StringIO()
result = unittest.TextTestRunner(stream=stream).run(unittest.defaultTestLoader.loadTestsFromTestCase(TestAdd))
print(result.testsRun, result.wasSuccessful(), stream.getvalue().splitlines()[0])
