export interface Command {
  /** As it stands on the page, continuation lines included. */
  text: string
  /** What the comment under it says that it answers, `…` for anything; null where nothing is said. */
  answer: string | null
}

const REQUEST = /^(?:curl |[A-Z_]+=\$\(curl )/
const SCAFFOLD = /^npm run new -- /
/** Comments that are an answer: JSON, an event stream, a status line. All others are prose. */
const ANSWER = /^# ((?:[[{]|data: |HTTP\/).*)$/

/** The commands of a page's shell blocks that a test can run: requests, and what writes the beginning of a plugin. */
export function commandsOf(page: string): { scaffolds: string[]; requests: Command[] } {
  const commands = [...page.matchAll(/^```sh\n(.*?)^```$/gms)].flatMap(([, block]) => readCommands(block!))
  return {
    scaffolds: commands.map(({ text }) => text).filter((text) => SCAFFOLD.test(text)),
    requests: commands.filter(({ text }) => REQUEST.test(text)),
  }
}

/** The commands of one shell block, with the answers that stand under them. */
export function readCommands(block: string): Command[] {
  const commands: Command[] = []
  for (const line of block.replaceAll('\\\n', '\\\0').split('\n')) {
    const answer = ANSWER.exec(line)?.[1]
    const last = commands.at(-1)
    if (answer !== undefined && last !== undefined)
      last.answer = last.answer === null ? answer : `${last.answer}\n${answer}`
    else if (line !== '' && !line.startsWith('#')) commands.push({ text: line.replaceAll('\0', '\n'), answer: null })
  }
  return commands
}

/** True when an output is what a page says: the same text, where `…` stands for any. */
export function isAnswer(output: string, answer: string): boolean {
  const parts = answer
    .trim()
    .split('…')
    .map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'))
  return new RegExp(`^${parts.join('.*?')}$`, 's').test(output.trim().replaceAll('\r', ''))
}

/** The files that a page shows: blocks of TypeScript or SQL whose first line is their path. */
export function filesOf(page: string): { path: string; text: string }[] {
  return [...page.matchAll(/^```(?:ts|sql)\n(.*?)^```$/gms)].flatMap(([, text]) => {
    const path = /^(?:\/\/|--) (\S+\.(?:ts|sql))\n/.exec(text!)?.[1]
    return path === undefined ? [] : [{ path, text: text! }]
  })
}
