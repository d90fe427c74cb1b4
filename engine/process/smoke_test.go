package process

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"testing"
	"time"

	"fermata/continuation"
	"fermata/continuation/boltstore"
	"fermata/engine"
	"fermata/stubs"
)

func TestSmoke(t *testing.T) {
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	py := os.Getenv("PY")
	if py == "" {
		py = "/usr/bin/python3"
	}
	begin := time.Now()
	p, err := New(t.Context(), Options{Dir: t.TempDir() + "/sb", Python: py, Memory: 512 << 20, CPUs: 1, PIDs: 64, Output: 1 << 20, Disk: 256 << 20, Orphan: time.Minute, Log: log})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	st, err := boltstore.Open(t.TempDir()+"/x.db", log)
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	sg, _ := continuation.NewSigner([][]byte{make([]byte, 32)})
	e, err := engine.New(t.Context(), engine.Options{Provider: p, Store: st, Signer: sg, Log: log, PauseTTL: time.Minute, KeepAnswers: time.Minute, MaxRounds: 20, MaxCalls: 1000, PoolSize: 4, MaxSandboxes: 64, QueueTimeout: 10 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	fmt.Println("up", time.Since(begin))
	defer e.Close(t.Context())
	run := func(code string, tools ...stubs.Tool) {
		b := time.Now()
		c, _ := json.Marshal(code)
		o, err := e.Start(t.Context(), engine.Start{Principal: "a", Session: "s", Code: c, Tools: tools, Timeout: 5 * time.Second})
		fmt.Printf("%v %v %+v\n", time.Since(b), err, short(o))
		for n := 0; o.State == engine.Paused; n++ {
			var rs []engine.Result
			for _, c := range o.Calls {
				rs = append(rs, engine.Result{CallID: c.ID, Value: json.RawMessage(`{"got":` + string(c.Input) + `}`)})
			}
			b := time.Now()
			o, err = e.Resume(t.Context(), engine.Resume{Principal: "a", Token: o.Token, Results: rs, Request: fmt.Sprint(n)})
			fmt.Printf("   %v %v %+v\n", time.Since(b), err, short(o))
		}
	}
	tool := stubs.Tool{Name: "get-weather"}
	run("print('hi')")
	run("import os\nos.system('id; ls -la / /mnt/data /opt/fermata /dev; mount; cat /proc/self/status | grep -i -E \"cap|secc|nonew|uid\"; ls /proc; env; ip a; cat /proc/self/cgroup; ls -la /proc/self/fd /proc/1/fd; nproc; hostname')")
	run("x = await get_weather(city='Paris')\nprint(x)\ny = await asyncio.gather(*[get_weather(n=i) for i in range(3)])\nprint(y)", tool)
	for range 10 {
		run("x = await get_weather(city='Paris')\nprint(pd.DataFrame([x]))", tool)
	}
	run("for i in range(5): await get_weather(i=i)", tool)
	run("1/0")
	run("while True: pass")
	run("import sys; sys.exit(3)")
	run("import os; print('x'); os.kill(os.getpid(), 9)")
	run("x = bytearray(900<<20)")
	run("import os\nwhile True: print('x'*1000)")
	run("import asyncio\nasync def main():\n  print(await get_weather())\nasyncio.run(main())", tool)
	run("r = await asyncio.gather(*[asyncio.to_thread(lambda i=i: asyncio.run(get_weather(i=i))) for i in range(3)])\nprint(r)", tool)
	run("      x = get_weather()\n      print('''a\n      b''')\n      if x: return 5", tool)
}

func short(o engine.Outcome) string {
	o.Token = ""
	b, _ := json.Marshal(o)
	if len(b) > 6000 {
		b = b[:6000]
	}
	return string(b)
}
