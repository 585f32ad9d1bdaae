package memory_test

import (
	"testing"

	"github.com/memtox/memtox/agents/memory"
	"github.com/memtox/memtox/agents/memory/storetest"
)

func TestStoreInMemory(t *testing.T) {
	storetest.Run(t, func(testing.TB) memory.Store { return memory.NewStore() })
}

func TestCuratorInMemory(t *testing.T) {
	storetest.RunCurator(t, func(testing.TB) memory.Store { return memory.NewStore() })
}
