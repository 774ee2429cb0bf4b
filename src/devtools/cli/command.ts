// What a command of `heddle` is, and how it keeps what it has made.
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import type { ParseArgsConfig, parseArgs } from 'node:util'
import { CommandError } from '../../core/config/command-line.ts'
import { shown } from '../../core/errors/places.ts'

type Flags = NonNullable<ParseArgsConfig['options']>
type Values<Options extends Flags> = ReturnType<typeof parseArgs<{ options: Options }>>['values']

/** A command of `heddle`. */
export interface Command {
  usage: string
  options: Flags
  /** It takes words beside its flags. */
  takesWords: boolean
  /** It may set `process.exitCode`. */
  run(values: object, words: readonly string[]): Promise<void> | void
}

/** A command, with the types of its flags. */
export const command = <const Options extends Flags>(
  usage: string,
  options: Options,
  run: (values: Values<Options>, words: readonly string[]) => Promise<void> | void,
  takesWords = true,
): Command => ({ usage, options, run: run as Command['run'], takesWords })

/**
 * Writes a file that is made of the sources, or only compares it.
 * @param again the command that writes it
 * @param source what it was made of, where that is to be said
 * @throws CommandError when it is only compared, and is not up to date
 */
export function keep(file: string, text: string, isOnlyCompared: boolean, again: string, source?: string): void {
  const isCurrent = existsSync(file) && readFileSync(file, 'utf8') === text
  if (!isCurrent && isOnlyCompared) {
    const than = source === undefined ? '' : ` with ${source}`
    throw new CommandError(`${shown(file)} is not up to date${than}: ${again}`)
  }
  if (!isCurrent) {
    mkdirSync(dirname(file), { recursive: true })
    writeFileSync(file, text)
  }
  const from = source === undefined ? '' : `, from ${source}`
  console.log(`${shown(file)} ${isCurrent ? 'is up to date' : 'is written'}${from}`)
}
