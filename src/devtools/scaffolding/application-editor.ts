const SKIPPED = ['<node_internals>/**', '**/node_modules/**']
const PACKAGE = `\${workspaceFolder}/node_modules/heddle/dist/src`

/** What VS Code starts: the service, the test file that is open, or a debugger for a service that runs. The threads of lanes are debugged with it. */
const LAUNCHES = {
  version: '0.2.0',
  configurations: [
    {
      name: 'Serve, and load what is saved',
      type: 'node',
      request: 'launch',
      program: `${PACKAGE}/heddle.cjs`,
      args: ['dev'],
      console: 'integratedTerminal',
      skipFiles: SKIPPED,
    },
    {
      name: 'Test this file',
      type: 'node',
      request: 'launch',
      runtimeArgs: ['--require', `${PACKAGE}/preload.cjs`, '--import', 'tsx'],
      program: `\${file}`,
      console: 'integratedTerminal',
      skipFiles: SKIPPED,
    },
    {
      name: 'Attach to npm run dev -- --inspect',
      type: 'node',
      request: 'attach',
      port: 9229,
      restart: true,
      skipFiles: SKIPPED,
    },
  ],
}

/** Files for editors. */
export const editorFiles = (): Record<string, string> => ({
  '.vscode/launch.json': `${JSON.stringify(LAUNCHES, null, 2)}\n`,
})
