package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// sessionSettings are set on each connection if there is no pooler. All queries can use an index, and a
// plan that was made while a table was small must not scan the table after it has grown.
var sessionSettings = map[string]string{"enable_seqscan": "off", "jit": "off"}

func poolConfig(cfg *Config) (*pgxpool.Config, error) {
	if cfg.URL == "" {
		return nil, errors.New("no URL")
	}
	pc, err := pgxpool.ParseConfig(cfg.URL)
	if err != nil {
		return nil, urlError(err)
	}
	if cfg.MaxConns > 0 || !strings.Contains(cfg.URL, "pool_max_conns=") {
		pc.MaxConns = int32(cmp.Or(cfg.MaxConns, DefaultMaxConns))
	}
	if pc.MaxConns < minConns {
		return nil, fmt.Errorf("pool_max_conns is %d in the address: at least %d connections are needed", pc.MaxConns, minConns)
	}
	cc := pc.ConnConfig
	if cfg.Pooler, err = poolerSetting(cc, cfg.Pooler); err != nil {
		return nil, err
	}
	if cc.RuntimeParams["application_name"] == "" {
		cc.RuntimeParams["application_name"] = "oneclaw"
	}
	if cfg.Pooler {
		cc.DefaultQueryExecMode = pgx.QueryExecModeExec
		cc.StatementCacheCapacity, cc.DescriptionCacheCapacity = 0, 0
	} else {
		maps.Copy(cc.RuntimeParams, sessionSettings)
	}
	if namesSeveralServers(cc) && cc.ValidateConnect == nil {
		cc.ValidateConnect = pgconn.ValidateConnectTargetSessionAttrsReadWrite
	}
	if cfg.Password != "" {
		cc.Password = cfg.Password
	}
	if cfg.PasswordFile != "" {
		pc.BeforeConnect = func(_ context.Context, cc *pgx.ConnConfig) error {
			return readPassword(cc, cfg.PasswordFile)
		}
	}
	return pc, nil
}

// poolerSetting returns the parameter pooler of the URL, or configured if the URL has none. It removes the
// parameter from the ones that are sent to the server.
func poolerSetting(cc *pgx.ConnConfig, configured bool) (bool, error) {
	value, named := cc.RuntimeParams["pooler"]
	delete(cc.RuntimeParams, "pooler")
	if !named {
		return configured, nil
	}
	pooler, err := strconv.ParseBool(value)
	if err != nil {
		return false, errors.New("the URL cannot be read: pooler is true or false")
	}
	return pooler, nil
}

// urlError describes an invalid URL without repeating any of it, because it may contain a password.
func urlError(err error) error {
	if file, ok := errors.AsType[*fs.PathError](err); ok {
		return fmt.Errorf("the URL names a file that cannot be read: %w", file)
	}
	return errors.New("the URL cannot be read: it has the form postgres://user@host:port/database?sslmode=verify-full, and special characters of a password are written as %40 and the like")
}

// namesSeveralServers reports whether the URL names several servers, of which the one that accepts
// writes is used.
func namesSeveralServers(cc *pgx.ConnConfig) bool {
	for _, f := range cc.Fallbacks {
		if f.Host != cc.Host || f.Port != cc.Port {
			return true
		}
	}
	return false
}

func readPassword(cc *pgx.ConnConfig, file string) error {
	content, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("read the password: %w", err)
	}
	cc.Password = strings.TrimRight(string(content), "\r\n")
	return nil
}
