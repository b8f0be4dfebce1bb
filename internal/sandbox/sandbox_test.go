package sandbox_test

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"oneclaw/internal/sandbox"
)

// argument tells this test program to be a child.
const argument = "test-child"

// role tells a copy of this test program what memory to take, and what to start.
const role = "PROCTREE_ROLE"

// order is what the parent wants of it.
type order struct {
	MiB  int
	Spin bool
}

func TestMain(m *testing.M) {
	if plan := os.Getenv(role); plan != "" {
		act(strings.Fields(plan))
		return
	}
	if len(os.Args) == 2 {
		switch os.Args[1] {
		case argument:
			os.Exit(serve())
		case sandbox.ScriptArgument:
			if err := sandbox.ServeScript(os.Stdin, os.Stdout); err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
			os.Exit(0)
		}
	}
	goleak.VerifyTestMain(m)
}

// serve confines itself, takes memory or processor time as it is told, and says so.
func serve() int {
	if err := sandbox.Confine(sandbox.Limits{Memory: 512 << 20, CPU: time.Second}); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	parent := sandbox.NewConn(os.Stdin, os.Stdout)
	var kept [][]byte
	for {
		var o order
		if parent.Receive(&o) != nil {
			return 3
		}
		for range o.MiB {
			block := make([]byte, 1<<20)
			for i := 0; i < len(block); i += 4096 {
				block[i] = 1
			}
			kept = append(kept, block)
		}
		for spins := 0; o.Spin; spins++ { // until it is killed
			runtime.KeepAlive(spins)
		}
		if parent.Send(len(kept)) != nil {
			return 4
		}
	}
}

func start(t *testing.T) *sandbox.Process {
	t.Helper()
	command, err := sandbox.Command(argument)
	if err != nil {
		t.Fatal(err)
	}
	p, err := sandbox.Start(t.Context(), command)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func needProc(t *testing.T) {
	t.Helper()
	if _, err := os.Stat("/proc/self/status"); err != nil {
		t.Skip("no /proc here")
	}
}

func ask(p *sandbox.Process, o order) (got int, err error) {
	if err := p.Send(o); err != nil {
		return 0, err
	}
	return got, p.Receive(&got)
}

// A child that takes more than it may is killed, and its end says why.
func TestAChildThatTakesTooMuchIsKilled(t *testing.T) {
	needProc(t)
	p := start(t)
	if n, err := ask(p, order{MiB: 1}); n != 1 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	p.Watch(100 << 20)
	if n, err := ask(p, order{MiB: 200}); err == nil {
		// It took all of it between two looks; the next one ends it.
		if err = p.Receive(&n); err == nil {
			t.Error("it lives on")
		}
	}
	if err := p.End(); !errors.Is(err, sandbox.ErrExceeded) {
		t.Errorf("ended with %v", err)
	}
}

// A child that asks the system for more than it may have ends by itself, watched or not.
func TestTheAddressSpaceOfAChildIsBounded(t *testing.T) {
	needProc(t)
	p := start(t)
	if n, err := ask(p, order{MiB: 1 << 10}); err == nil {
		t.Errorf("it took %d MiB", n)
	}
	// How a program says that it got no memory depends on how it was built.
	if err := p.End(); err == nil || strings.Contains(err.Error(), "killed") {
		t.Errorf("ended with %v", err)
	}
}

// The kernel ends a child whose processor time is over, also where nobody kills it.
func TestTheProcessorTimeOfAChildIsBounded(t *testing.T) {
	t.Parallel()
	p := start(t)
	if _, err := ask(p, order{Spin: true}); err == nil {
		t.Error("it ended its loop")
	}
	if err := p.End(); err == nil || !strings.Contains(err.Error(), "killed") && !strings.Contains(err.Error(), "CPU") {
		t.Errorf("ended with %v", err)
	}
}
