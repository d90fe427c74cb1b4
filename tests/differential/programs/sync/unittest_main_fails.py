import unittest
class TestNumbers(unittest.TestCase):
    def test_sum(self):
        self.assertEqual(sum([1, 2]), 3)
    def test_wrong(self):
        self.assertIn(4, [1, 2])
result = unittest.main(argv=["x"], exit=False, verbosity=0).result
print(result.testsRun, len(result.failures), result.failures[0][1].splitlines()[-1])
