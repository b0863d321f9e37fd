// The scripts of a page share one scope: TypeScript, which sees them together, finds names that nobody states.
import js from "@eslint/js";

export default [
  {
    ...js.configs.recommended,
    files: ["attnviz/**/*.js"],
    languageOptions: { ecmaVersion: 2023, sourceType: "script" },
    rules: {
      ...js.configs.recommended.rules,
      "no-undef": "off",
      "no-unused-vars": ["error", { vars: "local" }],
      "no-implicit-globals": "off",
      eqeqeq: "error",
      "no-eval": "error",
      "no-implied-eval": "error",
      "no-var": "error",
      "prefer-const": "error",
    },
  },
];
