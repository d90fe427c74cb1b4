raise ValueError("Größe ungültig: 東京 😀")
