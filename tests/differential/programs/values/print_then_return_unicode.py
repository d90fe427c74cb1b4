print("Größe: 5 µm – “ok” 東京 😀")
return "Ünïcödé\n\t\"x\""
