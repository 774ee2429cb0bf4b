const TSX = /(?:^| )(?:--(?:import|require|loader)|-r)[ =](?:tsx|\S*\/tsx\/\S*)(?= |$)/

/** True when tsx is named on the command line, as for the tests of an application: then it loads everything, and the runtime's own loader nothing. */
exports.isTsx = TSX.test([...process.execArgv, process.env.NODE_OPTIONS ?? ''].join(' '))
