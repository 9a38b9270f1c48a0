package cli

import (
	"errors"
	"fmt"
	"io"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// Exit statuses.
const (
	exitFine  = 0
	exitNo    = 1 // bad configuration, a port in use, a refused change
	exitUsage = 2
)

// errSaid ends a command with exitNo when all there is to say was said.
var errSaid = errors.New("said already")

// errUsage is a command line that makes no sense.
type errUsage struct{ error }

// Main runs the command line and returns the exit status. Results go to stdout, messages to stderr.
func Main(args []string, stdout, stderr io.Writer) int {
	root := newRoot()
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := root.Execute()
	var usage errUsage
	switch {
	case err == nil:
		return exitFine
	case errors.Is(err, errSaid):
		return exitNo
	case errors.As(err, &usage):
		fmt.Fprintf(stderr, "sluice: %v\nRun 'sluice --help' for usage.\n", err)
		return exitUsage
	}
	fmt.Fprintf(stderr, "sluice: %v\n", err)
	return exitNo
}

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:           "sluice",
		Short:         "A Layer-4 TCP load balancer for databases and other long-lived TCP services",
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          usageArgs(cobra.NoArgs),
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return errUsage{err} })
	root.AddCommand(newRun(), newCheck(), newDemo(), newVersion())
	return root
}

// usageArgs makes wrong arguments an errUsage.
func usageArgs(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if err := check(cmd, args); err != nil {
			return errUsage{err}
		}
		return nil
	}
}

func newVersion() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprintln(cmd.OutOrStdout(), version())
			return err
		},
	}
}

func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "sluice (no build information)"
	}
	rev, dirty := "", ""
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			rev = " " + s.Value[:min(12, len(s.Value))]
		case s.Key == "vcs.modified" && s.Value == "true":
			dirty = "+changes"
		}
	}
	return fmt.Sprintf("sluice %s%s%s %s", info.Main.Version, rev, dirty, info.GoVersion)
}
