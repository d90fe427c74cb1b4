// Programs to begin with.

const cityInput = { type: "object", properties: { city: { type: "string" } }, required: ["city"] };

export const examples = [
  {
    name: "One call",
    language: "python",
    code: `weather = await get_weather(city="Paris")
print("It is", weather["celsius"], "degrees in Paris")
`,
    tools: [{ name: "get_weather", description: "The weather in a city", parameters: cityInput }],
  },
  {
    name: "Calls at once",
    language: "python",
    code: `cities = ["Paris", "Rome", "Oslo"]
reports = await asyncio.gather(*(get_weather(city=c) for c in cities))
for city, report in zip(cities, reports):
    print(f"{city:8} {report}")
`,
    tools: [{ name: "get_weather", description: "The weather in a city", parameters: cityInput }],
  },
  {
    name: "A program that takes its time",
    language: "python",
    code: `for step in range(1, 31):
    print(f"step {step} of 30")
    await asyncio.sleep(0.5)
`,
    tools: [],
  },
  {
    name: "A plot",
    language: "python",
    code: `x = np.linspace(0, 4 * np.pi, 400)
plt.plot(x, np.sin(x), label="sin")
plt.plot(x, np.cos(x), label="cos")
plt.legend()
plt.savefig("waves.png")
print("drawn")
`,
    tools: [],
  },
  {
    name: "A shell script",
    language: "bash",
    code: `get_weather '{"city": "Paris"}' > report.json
echo "The report: $(cat report.json)"
`,
    tools: [{ name: "get_weather", description: "The weather in a city", parameters: cityInput }],
  },
];
