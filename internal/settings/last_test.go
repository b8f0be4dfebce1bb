package settings_test

import (
	"sync"
	"testing"

	"oneclaw/internal/settings"
)

func countRoutes(t *testing.T, s *settings.Settings) int {
	t.Helper()
	r, err := s.Chats.Resolve(t.Context(), "telegram:1", "telegram:1")
	must(t, err)
	return len(r.Routes)
}

// Whatever is switched off, reset or deleted, a chat has a model as long as any provider can be asked; what would
// leave none is refused.
func TestAChatHasAModelWhileAnyProviderCanBeAsked(t *testing.T) {
	off := settings.ProviderChange{Active: new(false)}
	t.Run("the preset goes off while no default is set", func(t *testing.T) {
		s, v := open(t, openKV(t))
		addUsable(t, s, v)
		_, _, err := s.Providers.Change(t.Context(), settings.PresetID, off)
		if n := countRoutes(t, s); n == 0 && err == nil {
			t.Error("no chat has a model")
		}
	})
	usableAlone := func(t *testing.T) (*settings.Settings, *settings.Vault, settings.Ref) {
		s, v := open(t, openKV(t))
		ref := addUsable(t, s, v)
		must(t, s.Values.Set(t.Context(), settings.SettingDefaultModel, ref.String()))
		_, _, err := s.Providers.Change(t.Context(), settings.PresetID, off)
		must(t, err)
		if countRoutes(t, s) == 0 {
			t.Fatal("no model before")
		}
		return s, v, ref
	}
	t.Run("the default is taken back", func(t *testing.T) {
		s, _, _ := usableAlone(t)
		err := s.Values.Reset(t.Context(), settings.SettingDefaultModel)
		if n := countRoutes(t, s); n == 0 && err == nil {
			t.Error("no chat has a model")
		}
	})
	t.Run("the default becomes a model that cannot be asked", func(t *testing.T) {
		s, _, _ := usableAlone(t)
		err := s.Values.Set(t.Context(), settings.SettingDefaultModel, settings.PresetID+"/gpt-5-mini")
		if n := countRoutes(t, s); n == 0 && err == nil {
			t.Error("no chat has a model")
		}
	})
	t.Run("the default model of several is deleted", func(t *testing.T) {
		s, _, ref := usableAlone(t)
		_, err := s.Models.Add(t.Context(), settings.Ref{Provider: ref.Provider, Model: "another"}, "")
		must(t, err)
		err = s.Models.Delete(t.Context(), ref)
		if n := countRoutes(t, s); n == 0 && err == nil {
			t.Error("no chat has a model")
		}
	})
	t.Run("the models are fetched and there are none", func(t *testing.T) {
		s, v := open(t, openKV(t))
		ref := addUsable(t, s, v)
		_, err := s.Models.Replace(t.Context(), ref.Provider, []settings.Model{{ID: "dynamic"}})
		must(t, err)
		must(t, s.Models.Delete(t.Context(), ref))
		must(t, s.Values.Set(t.Context(), settings.SettingDefaultModel, ref.Provider+"/dynamic"))
		_, _, err = s.Providers.Change(t.Context(), settings.PresetID, off)
		must(t, err)
		_, err = s.Models.Replace(t.Context(), ref.Provider, nil)
		usable, _ := s.Providers.AnyUsable(t.Context(), "")
		if n := countRoutes(t, s); n == 0 && err == nil {
			t.Errorf("no chat has a model; any usable: %t", usable)
		}
	})
	t.Run("the preset lacks the key that its server wants", func(t *testing.T) {
		cfg := config(openKV(t))
		cfg.Preset.Key, cfg.Preset.LacksKey = "", true
		s, v, err := settings.Open(cfg)
		must(t, err)
		if usable, _ := s.Providers.AnyUsable(t.Context(), ""); usable {
			t.Error("it counts as one that can be asked")
		}
		ref := addUsable(t, s, v)
		_, _, err = s.Providers.Change(t.Context(), ref.Provider, off)
		if !settings.Is(err, settings.Protected) {
			t.Errorf("the only one that can be asked goes off: %v", err)
		}
	})
	t.Run("both go off at once", func(t *testing.T) {
		for range 50 {
			s, v := open(t, openKV(t))
			ref := addUsable(t, s, v)
			must(t, s.Values.Set(t.Context(), settings.SettingDefaultModel, ref.String()))
			var both sync.WaitGroup
			for _, id := range []string{settings.PresetID, ref.Provider} {
				both.Go(func() { _, _, _ = s.Providers.Change(t.Context(), id, off) })
			}
			both.Wait()
			if usable, _ := s.Providers.AnyUsable(t.Context(), ""); !usable {
				t.Error("both are off")
				return
			}
		}
	})
}
