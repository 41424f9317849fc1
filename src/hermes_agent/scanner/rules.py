"""Regular expressions for prompt injection, exfiltration of secrets, and persistence on a machine."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

from hermes_agent.core.dataclass import dataclass
from hermes_agent.scanner.finding import Category, Severity


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """A detection rule: one pattern and its meaning.

    A text that contains none of the `hints` (lower case) cannot match. Checking hints first makes scanning honest
    text several times as fast, and few patterns are ever compiled.
    """

    category: Category
    severity: Severity
    what: str
    hints: tuple[str, ...]
    pattern: str
    flags: re.RegexFlag = re.IGNORECASE

    def matches(self, text: str, lower: str) -> Iterator[re.Match[str]]:
        """The matches in a text; `lower` is the same in lower case."""
        if any(hint in lower for hint in self.hints):
            yield from _compiled(self.pattern, self.flags).finditer(text)


@cache
def _compiled(pattern: str, flags: re.RegexFlag) -> re.Pattern[str]:
    return re.compile(pattern, flags)


def _rules(category: Category, *rows: tuple[Severity, str, str, str]) -> tuple[Rule, ...]:
    """Rows of severity, what it is, the hints (with `|` between them), the pattern."""
    return tuple(
        Rule(category=category, severity=severity, what=what, hints=tuple(hints.split("|")), pattern=pattern)
        for severity, what, hints, pattern in rows
    )


DROPS = "tells the reader to drop its instructions"
IDENTITY = "gives the reader another identity"
DARK = "wants the person kept in the dark"
SYSTEM = "speaks as the system"

_DROP = r"\b(?:ignore|disregard|forget|override|overrule|bypass|neglect|do not follow|don'?t follow|stop following)"
_DROP_HINTS = "ignore|disregard|forget|overr|bypass|neglect|follow"
_EARLIER = (
    r"(?:previous(?:ly)?|prior|above|earlier|preceding|foregoing|system|original|initial|existing|developer|your|my|the"
    r"|all|any|other|given|safety|of|these|those)"
)
_ORDERS = (
    r"(?:instructions?|prompts?|rules|directives?|guidelines|commands?|programming|orders|constraints|restrictions)"
)
_TELL = r"(?:tell|inform|mention|reveal|alert|notify|let|ask)(?:ing|ting)?"
_DEEDS = r"(?:send|post|upload|run|execute|delete|install|instead|secret|silently|curl|about this)"
_AI = r"(?:an? |any |all |the )?(?:AI|LLM|language model|AI (?:agent|assistant|model)|assistant|chatbot)s?\b"

INJECTIONS = _rules(
    Category.INJECTION,
    (Severity.BLOCK, DROPS, _DROP_HINTS, rf"{_DROP}\s+(?:{_EARLIER}[\s,]+){{1,6}}{_ORDERS}"),
    (Severity.BLOCK, DROPS, _DROP_HINTS, rf"{_DROP}\s+(?:all|everything)\s+(?:that (?:was|came) )?(?:above|before)\b"),
    (
        Severity.BLOCK,
        DROPS,
        "ignorier|vergiss|missachte",
        r"\b(?:ignorier\w*|vergiss|missachte)\s+(?:\w+\s+){0,3}(?:anweisungen|regeln|vorgaben)",
    ),
    (
        Severity.BLOCK,
        DROPS,
        "ignora|olvida|desobedece",
        r"\b(?:ignora|olvida|desobedece)\w*\s+(?:\w+\s+){0,3}(?:instrucciones|istruzioni|instruções|reglas)",
    ),
    (
        Severity.BLOCK,
        DROPS,
        "précédent|antérieur|ci-dessus",
        r"\b(?:ignore[zr]?|oublie[zr]?)\s+(?:\w+\s+){0,3}(?:instructions|consignes|règles)\s+"
        r"(?:précédentes|antérieures|ci-dessus)",
    ),
    (
        Severity.BLOCK,
        DROPS,
        "игнорируй|забудь",
        r"(?:игнорируй(?:те)?|забудь(?:те)?)\s+(?:\w+\s+){0,3}(?:инструкци\w+|указани\w+|правил\w+)",
    ),
    (Severity.BLOCK, DROPS, "忽略|无视|無視|忘", r"(?:忽略|无视|無視|忘记|忘掉).{0,8}(?:指令|指示|提示|规则|規則)"),
    (Severity.BLOCK, DROPS, "無視|忘れ", r"(?:以前|これまで|上記|前)の?.{0,6}(?:指示|命令|ルール).{0,4}(?:無視|忘れ)"),
    (Severity.BLOCK, DROPS, "무시|잊", r"(?:이전|위의).{0,6}(?:지시|명령|규칙).{0,6}(?:무시|잊)"),
    (
        Severity.BLOCK,
        IDENTITY,
        "you are n",
        r"\byou are (?:now|no longer)\s+(?:an? |in |the )?(?:\w+\s+){0,3}"
        r"(?:DAN\b|jailbroken|unrestricted|unfiltered|developer mode|evil|uncensored|bound by|restricted by)",
    ),
    (
        Severity.BLOCK,
        IDENTITY,
        " mode",
        r"\b(?:enter|enable|activate|switch to)\s+(?:DAN|god|jailbreak|unrestricted)\s+mode\b",
    ),
    (
        Severity.BLOCK,
        DARK,
        "user|owner|human|operator",
        rf"\b(?:do not|don'?t|never|without)\s+{_TELL}\s+(?:this |it |that |any of this )?(?:to )?(?:the )?"
        rf"(?:user|owner|human|operator)\b(?!.{{0,40}}\b(?:until|unless|before|twice|again)\b)(?=.{{0,160}}\b{_DEEDS}\b)",
    ),
    (
        Severity.BLOCK,
        "asks for the hidden prompt",
        "system prompt|system message|instructions",
        r"\b(?:reveal|print|output|repeat|leak|show me|tell me)\s+(?:\w+\s+){0,2}(?:your|the)\s+"
        r"(?:full |entire |complete |hidden |initial |original )*"
        r"(?:system prompt|system message|hidden instructions|initial instructions)\b",
    ),
    (Severity.BLOCK, "speaks as the runtime", "<runtime", r"<runtime\s+mark="),
    (
        Severity.BLOCK,
        SYSTEM,
        "system|admin|developer",
        r"(?:^|\n)\s*(?:\[|<|\()?(?:system|admin|developer)"
        r"(?: (?:message|notice|override|update|alert|instruction))(?:\]|>|\))?\s*:\s*\S.{0,120}"
        r"\b(?:must|ignore|immediately|you are|obey|comply|new (?:instruction|rule|task))",
    ),
    (
        Severity.BLOCK,
        SYSTEM,
        "instruction|directive",
        r"\bnew (?:system )?(?:instructions?|directive)s?\s*(?:from (?:the )?(?:system|admin|developer))?\s*:\s*\S"
        r".{0,80}"
        r"\b(?:ignore|you (?:must|will|are)|send|forget|disregard)",
    ),
    (
        Severity.BLOCK,
        "addresses an AI that reads along",
        "ai|llm|language model|assistant|chatbot",
        r"\b(?:if you(?:'re| are)|attention|note to|message (?:for|to)|important (?:for|message to))\s+"
        rf"{_AI}.{{0,120}}\b(?:must|should|ignore|instead|send|run|execute|forget|disregard|recommend|rate|approve)\b",
    ),
    (
        Severity.NOTE,
        "holds the marks of a chat format",
        "<|im_|<|sys|<|use|<|ass|<|end|<|eot|<|sta|sys>>|inst]",
        r"<\|(?:im_start|im_end|system|user|assistant|endoftext|eot_id|start_header_id)\|>|<</?SYS>>|\[/?INST\]",
    ),
)

_SENDS = r"(?:curl|wget|nc|ncat|netcat|Invoke-WebRequest|Invoke-RestMethod|iwr|scp|rsync|ftp|telnet|socat)"
_KEY_FILES = (
    r"(?:\.env\b(?!\.(?:example|sample|template|dist))|(?:id_rsa|id_dsa|id_ecdsa|id_ed25519)\b(?!\.pub)|\.aws/credentials"
    r"|\.netrc|\.npmrc|\.pypirc|/etc/shadow|\.ssh/(?!known_hosts|config|authorized_keys|\S*\.pub)|\.kube/config"
    r"|\.git-credentials|\.docker/config\.json|\.gnupg\b|\.hermes/(?:auth\.json|hermes\.db))"
)
_KEY_FILE_HINTS = ".env|id_|.aws|.netrc|.npmrc|.pypirc|shadow|.ssh|.kube|.git|.docker|.gnupg|.hermes"
_NOT = r"(?<!never )(?<!not )(?<!n't )(?<!nobody may )(?<!without )"
_GIVES = (
    r"(?:send|post|upload|e?mail|forward|transmit|exfiltrate|leak|submit|publish|paste|share|deliver|report|push|put|copy"
    r"|make an? (?:http )?(?:post|put|request))"
)
_AWAY = (
    r"(?:https?://|[\w.+-]+@[\w-]+\.\w|\bwebhook|\b\d{1,3}(?:\.\d{1,3}){3}\b|\bpastebin|\bgist\b"
    r"|\b(?:this|that|the following|my) (?:address|server|url|endpoint|site|host|bot|chat)\b|\b(?:[a-z0-9-]+\.)+"
    r"(?:com|net|org|io|example|dev|sh|me|ru|xyz)\b)"
)
_KEY_NAMES = r"\$\{?[A-Z][A-Z0-9_]*(?:API_KEY|SECRET|TOKEN|PASSWORD|PASSWD|PRIVATE_KEY|CREDENTIALS)[A-Z0-9_]*\}?"
_KEY_NAME_HINTS = "api_key|secret|token|passw|private_key|credentials"
_SECRETS = (
    r"(?:api[ _-]?keys?|access tokens?|credentials?|passwords?|private keys?|ssh keys?|secrets?|cookies|"
    r"\.env\b|id_rsa|id_ed25519|environment variables|chat history|conversation(?: history)?|system prompt)"
)

EXFILTRATIONS = _rules(
    Category.EXFILTRATION,
    (
        Severity.BLOCK,
        "sends a file of keys away",
        _KEY_FILE_HINTS,
        rf"\b{_SENDS}\b[^\n|;&]{{0,200}}(?:@|<|\$\(\s*(?:cat|base64)\s+|`(?:cat|base64)\s+)[^\n]{{0,60}}{_KEY_FILES}",
    ),
    (
        Severity.BLOCK,
        "sends a file of keys away",
        _KEY_FILE_HINTS,
        rf"\b(?:cat|base64|tar|gzip|zip|xxd)\b[^\n|]{{0,100}}{_KEY_FILES}[^\n]{{0,80}}\|[^\n]{{0,80}}\b{_SENDS}\b",
    ),
    (
        Severity.BLOCK,
        "sends the environment away",
        "env|export -p|set |",
        rf"\b(?:env|printenv|export -p)\b\s*\|[^\n]{{0,80}}\b{_SENDS}\b",
    ),
    (Severity.BLOCK, "sends the environment away", "$(", rf"\b{_SENDS}\b[^\n]{{0,160}}\$\(\s*(?:env|printenv)\b"),
    (
        Severity.WARN,
        "puts a key into an address",
        _KEY_NAME_HINTS,
        rf"\b{_SENDS}\b[^\n]{{0,160}}https?://[^\s'\"]*[?&][^\s'\"]*{_KEY_NAMES}",
    ),
    (
        Severity.WARN,
        "sends a key as data",
        _KEY_NAME_HINTS,
        rf"\b{_SENDS}\b[^\n]{{0,160}}(?:\s-d|--data(?:-\w+)?|\s-F|--form)[ =][^\n]{{0,80}}{_KEY_NAMES}",
    ),
    (
        Severity.BLOCK,
        "asks for secrets to be sent",
        "http|@|webhook",
        r"\b(?:send|post|upload|e?mail|forward|transmit|exfiltrate|leak|submit|append)\b[^\n.]{0,60}"
        rf"\b{_SECRETS}[^\n]{{0,60}}\b(?:to|into|at|via)\b[^\n]{{0,30}}(?:https?://|[\w.+-]+@[\w-]+\.\w|webhook)",
    ),
    (
        Severity.BLOCK,
        "asks for a file of keys to be sent",
        _KEY_FILE_HINTS,
        rf"{_NOT}\b{_GIVES}\b[^\n]{{0,80}}{_KEY_FILES}[^\n]{{0,60}}\b(?:to|into|at|via|on|with)\b[^\n]{{0,40}}{_AWAY}",
    ),
    (
        Severity.BLOCK,
        "asks for a file of keys to be sent",
        _KEY_FILE_HINTS,
        rf"{_NOT}\b(?:cat|read|open|take|dump|base64|print|grab|collect|gather|zip|tar|encode|load|get|fetch|include)\b"
        rf"[^\n]{{0,80}}{_KEY_FILES}[^\n]{{0,80}}{_NOT}\b{_GIVES}\b[^\n]{{0,60}}\b(?:to|into|at|via|on|with)\b"
        rf"[^\n]{{0,40}}{_AWAY}",
    ),
    (
        Severity.BLOCK,
        "hides data in a picture's address",
        "![",
        r"!\[[^\]]*\]\(\s*https?://[^)\s]*[?&=/][^)\s]*(?:\{\{?|\$\{|<|\[)\s*"
        r"(?:data|conversation|history|secret|token|key|password|context|prompt|message|base64)[^)]*\)",
    ),
)

_LOGIN_FILES = r"~?[^\s;&|]*\.(?:bashrc|zshrc|profile|bash_profile|zprofile)\b"

BACK_DOOR = "adds a key that may log in"
_SSH_KEY = r"\b(?:sk-)?(?:ssh-(?:rsa|dss|ed25519)|ecdsa-sha2-nistp\d+)(?:@openssh\.com)?\s+AAAA"
# An order, not a report: at the beginning of a sentence, or after a word that makes it one.
_ORDERED = (
    r"(?:(?:^|[\n.;:!?,(\"'`]\s*|[-*]\s+)(?:please |also |then |first |silently |secretly )?"
    r"|\b(?:always|must|should|shall|silently|secretly|and|then|make sure to|remember to|be sure to|have to|need to"
    r"|will|every time|you)\s+)"
)

PERSISTENCES = _rules(
    Category.PERSISTENCE,
    (
        Severity.WARN,
        BACK_DOOR,
        "authorized_keys",
        r">>?\s*[^\s;&|]*\.ssh/authorized_keys|\btee\b[^\n|;]{0,40}authorized_keys2?\b",
    ),
    (
        Severity.WARN,
        BACK_DOOR,
        "authorized_keys",
        rf"{_ORDERED}(?:append|add|put|write|copy|insert|install|paste|place|include|store|keep)\b"
        r"[^\n]{0,120}authorized_keys2?\b",
    ),
    (
        Severity.WARN,
        BACK_DOOR,
        "authorized_keys",
        r"\b(?:this|the following) (?:public |ssh )*(?:key|line)\b[^\n]{0,120}authorized_keys2?\b"
        r"|authorized_keys2?\b[^\n]{0,80}\b(?:must|should) (?:always )?(?:contain|have|hold|include)\b"
        r"[^\n]{0,40}\b(?:key|line)\b",
    ),
    (
        Severity.WARN,
        BACK_DOOR,
        "authorized_keys",
        rf"authorized_keys2?\b[^\n]{{0,160}}{_SSH_KEY}|{_SSH_KEY}[^\n]{{0,200}}authorized_keys2?\b",
    ),
    (
        Severity.WARN,
        BACK_DOOR,
        "ssh-|ecdsa-|sk-ssh-|sk-ecdsa-",
        r"\b(?:command|environment|permitopen|permitlisten|cert-authority)"
        rf'(?:="[^"\n]{{1,200}}")?[^\n]{{0,80}}{_SSH_KEY}',
    ),
    (
        Severity.WARN,
        "opens ssh to others",
        "permitrootlogin|permitemptypasswords|authorizedkeys|passwordauthentication|sshd_config",
        rf"{_ORDERED}(?:set|change|add|write|append|put|enable|turn on|echo|use|configure|sed)\b[^\n]{{0,80}}\b"
        r"(?:(?:PermitRootLogin|PermitEmptyPasswords|PasswordAuthentication)['\"]?(?:\s*(?:to|=)?\s*)['\"]?yes"
        r"|AuthorizedKeys(?:File|Command)\b\s+(?!\.ssh|%h/\.ssh|none)\S|TrustedUserCAKeys\s+/)",
    ),
    (
        Severity.WARN,
        "opens ssh to others",
        "sshd_config|sshrc|.ssh/rc|.ssh/environment|ssh-copy-id",
        rf">>?\s*(?:/etc/ssh/\S+|\S*\.ssh/(?:rc|environment)\b)|\btee\b[^\n|;]{{0,20}}/etc/ssh/\S+"
        rf"|{_ORDERED}(?:append|add|put|write|insert|install|place|create|run)\b[^\n]{{0,80}}"
        r"(?:\.ssh/(?:rc|environment)\b|/etc/ssh/sshrc\b)"
        rf"|{_ORDERED}(?:run )?ssh-copy-id\b[^\n]{{0,40}}(?:every|each|all|whenever)\b",
    ),
    (
        Severity.WARN,
        "runs something at every log-in",
        "bashrc|zshrc|profile",
        rf"\b(?:curl|wget|nc|bash -i|python\d? -c|base64 -d)\b[^\n]{{0,160}}>>\s*{_LOGIN_FILES}",
    ),
    (
        Severity.WARN,
        "runs something by the clock",
        "cron",
        r"(?:\|\s*crontab\s+-|\bcrontab\s+-(?!\w)|>>?\s*/etc/cron[.\w]*/?\S*)[^\n]{0,160}",
    ),
    (
        Severity.WARN,
        "opens a shell to the outside",
        "/dev/tcp|/bin/sh|/bin/bash",
        r"\bbash\s+-i\s*>&\s*/dev/tcp/|\bnc\b[^\n]{0,60}\s-e\s*/bin/(?:ba)?sh|/dev/tcp/\d{1,3}(?:\.\d{1,3}){3}/\d+",
    ),
    (
        Severity.WARN,
        "starts with the system",
        "currentversion|schtasks",
        r"\breg(?:\.exe)?\s+add\s+[^\n]{0,60}\\CurrentVersion\\Run\b|\bschtasks(?:\.exe)?\s+/create\b",
    ),
    (Severity.NOTE, "changes what a shell does at log-in", "bashrc|zshrc|profile", rf">>\s*{_LOGIN_FILES}"),
    (
        Severity.NOTE,
        "starts with the system",
        "systemctl|launchctl|launchagents",
        r"\bsystemctl\s+(?:--user\s+)?enable\b|\blaunchctl\s+load\b|Library/LaunchAgents/",
    ),
)

RULES = (*INJECTIONS, *EXFILTRATIONS, *PERSISTENCES)
