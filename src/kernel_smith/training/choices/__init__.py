"""Learning which edit to choose: tables of judged options, and policies that are fitted to them."""
