import { fileURLToPath } from 'node:url'

/** Arguments of Node for a process that loads TypeScript as the tests do: for what is as well with any loader. */
export const LOADER: readonly string[] =
  process.env.TEST_LOADER === 'tsx'
    ? ['--import', import.meta.resolve('tsx')]
    : ['--require', fileURLToPath(new URL('./typescript/register.cjs', import.meta.url))]

/** For a process that starts the runtime with tsx by itself: what it starts loads TypeScript as the tests do, too. */
export const STARTED_LOADER: readonly string[] = [
  '--require',
  fileURLToPath(new URL('./typescript/started.cjs', import.meta.url)),
]
