package cli

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"sluice/conf"
)

func newCheck() *cobra.Command {
	strict := false
	cmd := &cobra.Command{
		Use:   "check FILE",
		Short: "Check a configuration file; binds nothing and changes nothing",
		Args:  usageArgs(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			_, warnings, err := load(args[0], cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			if strict && len(warnings) > 0 {
				return errSaid
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&strict, "strict", false, "warnings fail the check too")
	return cmd
}

// load reads a file and tells everything that is to be said about it. Start, check and reload all use it, so they
// come to the same verdict.
func load(file string, stderr io.Writer) (*conf.Config, []conf.Warning, error) {
	cfg, warnings, err := conf.Load(file)
	if err == nil {
		warnings = append(warnings, cfg.CheckDescriptors(descriptorLimit())...)
	}
	for _, w := range warnings {
		fmt.Fprintf(stderr, "%s (warning)\n", w)
	}
	if err != nil {
		fmt.Fprintln(stderr, err)
		return nil, warnings, errSaid
	}
	return cfg, warnings, nil
}
