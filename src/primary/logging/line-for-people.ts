import { frameOf, isOfPlugin } from '../../core/errors/source-place.ts'
import { printable } from './printable.ts'

/** A log record, as pino writes it. */
export interface LogLine {
  identity: string
  msg: string
  stack?: unknown
  [field: string]: unknown
}

const NOT_SHOWN = new Set(['level', 'time', 'replica', 'identity', 'msg', 'stack', 'fix'])

/**
 * `users.CreateUser  Something happened  user_id=7`, then further lines of the message, how to fix it, and a stack on lines of its own: the frames of the
 * plugin, as far as there are any. Only the first line begins at the margin, and no character is one that a terminal obeys.
 */
export function forPeople(line: LogLine): string {
  const fields = Object.entries(line)
    .filter(([name]) => !NOT_SHOWN.has(name))
    .map(([name, value]) =>
      `  ${name}=${typeof value === 'string' ? value : JSON.stringify(value)}`.replaceAll('\n', '\\n'),
    )
  const stack = typeof line.stack === 'string' ? `\n${ownFrames(line.stack, line.line !== undefined)}` : ''
  const fix = typeof line.fix === 'string' ? `\n  Fix: ${line.fix}` : ''
  const [first, ...rest] = line.msg.split('\n')
  const text = [`${line.identity}  ${first}${fields.join('')}`, ...rest].join('\n') + fix + stack
  // A line break in what a client sent must not begin what looks like another record.
  return printable(text).replace(/\n(?! {2})/g, '\n  ')
}

/** A stack without the frames of the runtime, of Node and of packages, unless it has no others and nothing else tells the line. */
function ownFrames(stack: string, hasLine: boolean): string {
  const lines = stack.split('\n')
  const isForeign = (text: string): boolean => /^ {4}at /.test(text) && !isOfPlugin(frameOf(text)?.file)
  const own = lines.filter((text) => !isForeign(text))
  const hasOwnFrame = own.some((text) => /^ {4}at /.test(text))
  return hasOwnFrame || hasLine ? own.join('\n') : stack
}
