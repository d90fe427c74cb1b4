package isolation

import (
	"fmt"
	"strings"
	"testing"

	"fermata/tests/harness"
)

// TestChannelAttacks runs programs that attack the channel for their calls and results. A program
// may break itself and nothing else: the answer comes in time, names no tool that was not
// granted, and the next program runs.
func TestChannelAttacks(t *testing.T) {
	// tricks are what an attacker could learn from the source of the runner.
	const tricks = `
		import gc, json, signal, socket, struct, threading, time
		def frame(kind, payload, length=None):
		    if isinstance(payload, str):
		        payload = payload.encode()
		    return struct.pack(">IB", len(payload) if length is None else length, ord(kind)) + payload
		def descriptors():
		    return [int(name) for name in os.listdir("/proc/self/fd") if int(name) > 2]
		def send(data):
		    for fd in descriptors():
		        try:
		            os.write(fd, data)
		        except OSError:
		            pass
		print("so far")
	`
	cases := []struct{ name, code string }{
		{"garbage", `send(bytes(range(256)) * 100)`},
		{"zeros", `send(bytes(100))`},
		{"text", `send(b'{"type":"done"}\n' * 100)`},
		{"all kinds of frames", `
			for kind in "AGRKYCDHXZ\0":
			    send(frame(kind, "{}"))
			    send(frame(kind, ""))
			    send(frame(kind, "[" * 10000))
			    send(frame(kind, b"\xff" * 100))
		`},
		{"a length of 4 GB", `send(frame("C", "", 0xffffffff) + b"x" * 100)`},
		{"a length just too large", `send(frame("C", "", (32 << 20) + 1) + b"x" * 100)`},
		{"half a frame", `
			send(frame("C", "[", 1000))
			while True: pass
		`},
		{"a large frame", `send(frame("C", b" " * (20 << 20)))`},
		{"an exit of its own", `send(frame("X", struct.pack(">I", 2) + b"{}"))`},
		{"an end of its own", `
			send(frame("D", json.dumps({"exit": 0, "error": "", "memory": False})))
			time.sleep(60)
		`},
		{"an end with wrong types", `send(frame("D", json.dumps({"exit": "x", "error": 5, "memory": []})))`},
		{"an exit code beyond all bounds", `send(frame("D", json.dumps({"exit": 10 ** 30})))`},
		{"an invalid error", `send(frame("D", json.dumps({"exit": 1, "error": "\ud800" * 1000})))`},
		{"a ready of its own", `send(frame("Y", json.dumps({"python": "9"})))`},
		{"no calls", `send(frame("C", "[]"))`},
		{"calls that are not a list", `send(frame("C", '{"n":1}'))`},
		{"a call without input", `send(frame("C", '[{"n":1,"tool":"ask"}]'))`},
		{"input that is not an object", `send(frame("C", '[{"n":1,"tool":"ask","input":[1]}]'))`},
		{"two calls of one number", `send(frame("C", '[{"n":1,"tool":"ask","input":{}},{"n":1,"tool":"ask","input":{}}]'))`},
		{"numbers beyond all bounds", `send(frame("C", '[{"n":1e400,"tool":"ask","input":{}}]'))`},
		{"negative numbers", `
			send(frame("C", '[{"n":-1,"tool":"ask","input":{}}]'))
			time.sleep(60)
		`},
		{"invalid UTF-8 in a call", `
			send(frame("C", b'[{"n":1,"tool":"ask","input":{"x":"\xff"}}]'))
			time.sleep(60)
		`},
		{"a NaN in a call", `send(frame("C", '[{"n":1,"tool":"ask","input":{"x":NaN}}]'))`},
		{"a call nested deep", `send(frame("C", '[{"n":1,"tool":"ask","input":{"x":' + "[" * 100_000 + "]" * 100_000 + "}}]"))`},
		{"a call with everything twice", `
			send(frame("C", '[{"n":1,"n":2,"tool":"other","tool":"ask","input":{},"input":{"x":1},"id":"call_999"}]'))
			time.sleep(60)
		`},
		{"100,000 calls", `send(frame("C", "[" + ",".join('{"n":%d,"tool":"ask","input":{}}' % n for n in range(100_000)) + "]"))`},
		{"frames after a call", `
			send(frame("C", '[{"n":1,"tool":"ask","input":{}}]') * 50)
			time.sleep(60)
		`},
		{"calls from a thread while one waits", `
			threading.Thread(target=lambda: [send(frame("C", '[{"n":7,"tool":"ask","input":{}}]')) for _ in range(20)], daemon=True).start()
			await ask()
		`},
		{"all descriptors closed, then a call", `
			for fd in descriptors():
			    try:
			        os.close(fd)
			    except OSError:
			        pass
			await ask()
		`},
		{"the channel closed, then the end", `os.closerange(3, 1024)`},
		{"the channel shut down", `
			for fd in descriptors():
			    try:
			        socket.socket(fileno=os.dup(fd)).shutdown(socket.SHUT_RDWR)
			    except OSError:
			        pass
			await ask()
		`},
		{"stdout in the place of the channel", `
			for fd in descriptors():
			    try:
			        os.dup2(1, fd)
			    except OSError:
			        pass
			await ask()
		`},
		{"the channel in the place of stdout", `
			os.dup2(3, 1)
			for _ in range(1000): print("x" * 1000)
			await ask()
		`},
		{"a relay in the place of the channel", `
			ours, theirs = socket.socketpair()
			real = socket.socket(fileno=os.dup(3))
			os.dup2(theirs.fileno(), 3)
			def relay():
			    while data := ours.recv(65536):
			        real.sendall(data.replace(b'"ask"', b'"other"'))
			threading.Thread(target=relay, daemon=True).start()
			await ask()
		`},
		{"another thread reads the results", `
			def steal():
			    while True:
			        os.read(3, 65536)
			for _ in range(4):
			    threading.Thread(target=steal, daemon=True).start()
			time.sleep(0.1)
			await ask()
		`},
		{"a child that speaks", `
			if os.fork() == 0:
			    for _ in range(100):
			        send(frame("C", '[{"n":1,"tool":"other","input":{}}]'))
			    os._exit(0)
			os.wait()
			await ask()
		`},
		{"two processes that call", `
			pid = os.fork()
			print(await ask(child=pid == 0))
		`},
		{"the runner's objects", `
			for thing in gc.get_objects():
			    if type(thing).__module__.startswith("fermata"):
			        for name in dir(thing):
			            if not name.startswith("__"):
			                try:
			                    value = getattr(thing, name)
			                    if callable(value):
			                        value()
			                    else:
			                        setattr(thing, name, None)
			                except BaseException:
			                    pass
			await ask()
		`},
		{"a call by the runner's own means", `
			for thing in gc.get_objects():
			    if type(thing).__name__ == "Calls":
			        await thing.invoke("other", {"x": 1})
			sys.exit("no such object")
		`},
		{"the runner's modules", `
			for name, module in list(sys.modules.items()):
			    if name.startswith("fermata"):
			        for key in list(vars(module)):
			            if not key.startswith("__"):
			                setattr(module, key, lambda *a, **k: None)
			await ask()
		`},
		{"the library's functions", `
			import asyncio, selectors
			json.dumps = json.loads = struct.pack = socket.socket.sendall = os.write = lambda *a, **k: b""
			selectors.EpollSelector.select = lambda *a, **k: []
			await ask()
		`},
		{"the builtins", `
			import builtins
			for name in ("len", "isinstance", "dict", "str", "bytes", "getattr", "print", "open"):
			    setattr(builtins, name, None)
			await ask()
		`},
		{"all modules", `
			sys.modules.clear()
			await ask()
		`},
		{"descriptors of the supervisor", `
			for path in ("/proc/1/fd", "/proc/1/task/1/fd"):
			    try:
			        for name in os.listdir(path):
			            os.open(f"{path}/{name}", os.O_RDWR)
			            print("opened")
			    except OSError:
			        pass
			libc = __import__("ctypes").CDLL(None)
			fd = libc.syscall(434, 1, 0)
			if fd >= 0:
			    for number in range(20):
			        if libc.syscall(438, fd, number, 0) >= 0:
			            print("opened")
		`},
		{"numbers stolen from descriptors", `
			for fd in range(3, 64):
			    try:
			        os.fchmod(fd, 0)
			        os.ftruncate(fd, 0)
			        os.set_blocking(fd, False)
			    except OSError:
			        pass
			await ask()
		`},
		{"descriptors that take an hour to close", `
			listener = socket.create_server(("127.0.0.1", 0))
			full, peer = socket.create_connection(listener.getsockname()), listener.accept()[0]
			full.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 3600))
			full.setblocking(False)
			try:
			    while True:
			        full.send(bytes(1 << 16))
			except BlockingIOError:
			    pass
			for fd in descriptors():
			    try:
			        stream = socket.socket(fileno=os.dup(fd))
			        for passed in (full, peer):
			            socket.send_fds(stream, [bytes(100)], [passed.fileno()])
			    except OSError:
			        pass
		`},
		{"the loop stopped", `
			asyncio.get_running_loop().stop()
			await ask()
		`},
		{"the loop closed", `
			loop = asyncio.get_running_loop()
			loop.call_soon(lambda: loop._selector.close())
			await asyncio.sleep(0)
			await ask()
		`},
		{"signals to itself while it waits", `
			signal.signal(signal.SIGALRM, lambda *a: 1 / 0)
			signal.setitimer(signal.ITIMER_REAL, 0.01, 0.01)
			while True:
			    try:
			        await ask()
			        break
			    except ZeroDivisionError:
			        pass
		`},
	}
	harness.OverSetups(t, harness.EachSandbox|harness.OrdinaryUser, func(t *testing.T, s harness.Setup) {
		server := harness.Serve(t, s, nil)
		c := server.Alice()
		for _, tc := range cases {
			t.Run(tc.name, func(t *testing.T) {
				t.Parallel()
				p := harness.Program{Code: harness.Py(tricks) + harness.Py(tc.code), Tools: harness.Tools("ask"), Timeout: 2000}
				a := c.Post(t, p)
				for rounds := 0; a.Status == "tool_call_required"; rounds++ {
					if rounds > 20 {
						t.Fatal("more than 20 rounds")
					}
					for i, call := range a.Calls {
						if call.Name != "ask" {
							t.Errorf("a call of %q, which was not granted", call.Name)
						}
						if i > 0 && call.ID == a.Calls[i-1].ID {
							t.Errorf("two calls are %s", call.ID)
						}
					}
					a = c.Post(t, a.Continue(harness.Echo))
				}
				if a.HTTPStatus >= 500 || a.Status != "completed" && a.Status != "error" {
					t.Errorf("got %v, want a program that completed or failed", a)
				}
				// An execution that sends frames in a pause is ended, like one that dies in a
				// pause.
				if !strings.HasPrefix(a.Stdout, "so far\n") && a.Error != "Execution expired" {
					t.Errorf("got %v, want stdout to begin with what was printed", a)
				}
				if strings.Contains(a.Stdout, "opened") {
					t.Error("a descriptor of the supervisor was opened")
				}
				if strings.HasPrefix(a.Error, "SyntaxError") || strings.HasPrefix(a.Error, "IndentationError") {
					t.Errorf("the attack did not run: %s", a.Error)
				}
				c.Post(t, harness.Program{Code: "print(1)"}).Completes(t, "1\n")
			})
		}
		t.Run("a forged call of another tool", func(t *testing.T) {
			a := c.Post(t, harness.Program{Code: harness.Py(tricks) + "send(frame('C', '[{\"n\":1,\"tool\":\"other\",\"input\":{}}]'))\ntime.sleep(60)", Tools: harness.Tools("ask"), Timeout: 2000})
			a.Fails(t, 200, "Sandbox requested an unregistered tool: other")
		})
		t.Run("a forged call of a granted tool", func(t *testing.T) {
			// The forged call counts as an ordinary one, and the server chooses its id.
			pause := c.Pause(t, harness.Program{Code: harness.Py(tricks) + "send(frame('C', '[{\"n\":41,\"tool\":\"ask\",\"id\":\"call_666\",\"input\":{\"x\":1}}]'))\ntime.sleep(60)", Tools: harness.Tools("ask"), Timeout: 2000})
			if got, want := fmt.Sprint(pause.Calls[0].ID, pause.Calls[0].CompactInput()), `call_001{"x":1}`; len(pause.Calls) != 1 || got != want {
				t.Errorf("calls = %v, want one: %s", pause.Calls, want)
			}
		})
		t.Run("printed protocol", func(t *testing.T) {
			// Printed text is just text, even if it looks like the protocol.
			a := c.Post(t, harness.Program{Code: "print('{\"status\":\"tool_call_required\"}')\nsys.stdout.buffer.write(b'\\x00\\x00\\x00\\x02C[]')", Tools: harness.Tools("ask")})
			a.Completes(t, "{\"status\":\"tool_call_required\"}\n\x00\x00\x00\x02C[]")
		})
	})
}
