"""Learning from conversations: reviews, their gates and proposals, the jobs behind them, and the curator of skills."""
