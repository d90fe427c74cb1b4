from fractions import Fraction
import statistics as st
data = [2, 4, 4, 4, 5, 5, 7, 9]
print(st.mean(data), st.median(data), st.mode(data), st.pstdev(data), st.quantiles(data, n=4))
print(sum(Fraction(1, n) for n in range(1, 7)), Fraction("0.125"))
