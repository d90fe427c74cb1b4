total_amount = 5
print(total_amout)
