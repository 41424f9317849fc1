"""Email protocol: IMAP mailbox, mail parsing, sender verification, and SMTP sending."""
