import { type Command, readCommands } from '../docs/readme.ts'

/** What a reader does with one block of a guide, or sees. */
export type Step =
  /** Saves a file. With `isAdded` the text is put behind what the file has already. */
  | { kind: 'file'; path: string; text: string; isAdded: boolean }
  /** Types a command. `shown`: lines that it prints, in this order; others may stand between them. */
  | { kind: 'command'; command: Command; shown: string[] }
  /** Sees lines in the terminal in which the service runs. */
  | { kind: 'log'; lines: string[] }

const BLOCK = /^```(\w*)\n(.*?)^```$/gms
const NAMED = /^(?:\/\/|--|#|<!--) (\S*\.\w+|\S*Dockerfile)(?: -->)?\n/
/** What has to be a file: it is compiled, or applied. Of other languages a block that names none is there to be read. */
const MUST_NAME = ['ts', 'sql', 'mjs']
/** JSON has no comments: the line before the block names the file. */
const NAMED_BEFORE = /`([^`\s]+\.json)`:$/

/** The steps of a guide, in their order. @throws when a block of code names no file, and when an output belongs to no command */
export function stepsOf(guide: string): Step[] {
  const steps: Step[] = []
  for (const block of guide.matchAll(BLOCK)) {
    const [, language, text] = block as unknown as [string, string, string]
    const linesBefore = guide.slice(0, block.index).trim().split('\n')
    if (language === 'sh') {
      for (const command of readCommands(text)) steps.push({ kind: 'command', command, shown: [] })
    } else if (language === 'text') {
      const last = steps.at(-1)
      if (last?.kind !== 'command') throw new Error(`An output follows no command:\n${text}`)
      last.shown = linesOf(text)
    } else if (language === 'log') {
      steps.push({ kind: 'log', lines: linesOf(text) })
    } else if (language === 'dotenv') {
      steps.push({ kind: 'file', path: '.env', text, isAdded: true })
    } else {
      const path =
        NAMED.exec(text)?.[1] ?? (language === 'json' ? NAMED_BEFORE.exec(linesBefore.at(-1)!)?.[1] : undefined)
      if (path !== undefined) steps.push({ kind: 'file', path, text, isAdded: false })
      else if (MUST_NAME.includes(language)) throw new Error(`A block does not name its file:\n${text}`)
    }
  }
  return steps
}

const linesOf = (text: string): string[] => text.split('\n').filter((line) => line.trim() !== '' && line.trim() !== '…')

/** Whether an output has these lines in their order. `…` stands for anything, and what varies by itself for any of its kind. */
export function missingLine(output: string, lines: readonly string[]): string | null {
  const printed = output.split('\n').map(settled)
  let at = 0
  for (const line of lines) {
    const pattern = patternOf(settled(line))
    const found = printed.findIndex((text, n) => n >= at && pattern.test(text))
    if (found === -1) return line
    at = found + 1
  }
  return null
}

/** Times of day, durations and tokens are different each time. */
const settled = (line: string): string =>
  line
    .replaceAll('\r', '')
    .trim()
    .replace(/\[\d\d:\d\d:\d\d\.\d{3}\]/g, '[time]')
    .replace(/\b\d+(?:\.\d+)? ?ms\b/g, 'ms')
    .replace(/ {2,}/g, ' ')

const patternOf = (line: string): RegExp =>
  new RegExp(
    `^${line
      .split('…')
      .map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'))
      .join('.*')}$`,
  )
