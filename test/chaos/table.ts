/** Lines of a table that reads on a terminal and, pasted, in Markdown. */
export function tableOf(title: string, rows: readonly (readonly [name: string, value: string])[]): string[] {
  const width = Math.max(title.length, ...rows.map(([name]) => name.length))
  const valueWidth = Math.max(...rows.map(([, value]) => value.length))
  const line = (name: string, value: string) => `| ${name.padEnd(width)} | ${value.padEnd(valueWidth)} |`
  return [
    line(title, ''),
    `| ${'-'.repeat(width)} | ${'-'.repeat(valueWidth)} |`,
    ...rows.map(([name, value]) => line(name, value)),
  ]
}

/** Name → how often it occurs. */
export function countOf(names: readonly string[]): Record<string, number> {
  const counts: Record<string, number> = {}
  for (const name of names) counts[name] = (counts[name] ?? 0) + 1
  return counts
}

export function listed(counts: Record<string, number>): string {
  const entries = Object.entries(counts)
  return entries.length === 0 ? 'none' : entries.map(([name, count]) => `${name} ${count}`).join(', ')
}
