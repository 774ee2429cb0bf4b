import { fileURLToPath } from 'node:url'

/** Arguments of Node for a process that loads TypeScript. */
export const LOADER: readonly string[] = [
  '--require',
  fileURLToPath(new URL('./typescript/register.cjs', import.meta.url)),
]
