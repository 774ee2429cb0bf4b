// For the compiler: the pages load this module beside their own.
export * from 'lit-html'
