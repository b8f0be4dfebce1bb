package config

// PortConfig says where the bot listens, how others reach that, and whom the operator asks for
// a newer version.
type PortConfig struct {
	Listen     string `yaml:"listen" env:"ONECLAW_LISTEN"`
	PublicURL  string `yaml:"public_url" env:"ONECLAW_PUBLIC_URL"`
	ReleaseURL string `yaml:"release_url" env:"ONECLAW_RELEASE_URL"`
	// AdminTexts lets administrators read on their page what people and the bot wrote. Who
	// does is named in the chat and in the audit.
	AdminTexts bool `yaml:"admin_texts" env:"ONECLAW_ADMIN_TEXTS"`
}
