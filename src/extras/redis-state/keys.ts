const PREFIX = 'heddle:state:'
const DEFAULT = `${PREFIX}default:`

/**
 * The prefix of every key of a namespace: `heddle:state:<namespace>:`. Colons and percent signs of the namespace become `%3A` and `%25`,
 * so that it ends at the first colon. The key itself follows unchanged.
 */
export function prefixOf(namespace: string): string {
  if (namespace === 'default') return DEFAULT
  return `${PREFIX}${namespace.replace(/[%:]/g, (char) => (char === ':' ? '%3A' : '%25'))}:`
}

/** The glob pattern that matches exactly the keys that begin with a text. */
export function patternOf(prefix: string): string {
  return `${prefix.replace(/[\\*?[\]^-]/g, '\\$&')}*`
}
