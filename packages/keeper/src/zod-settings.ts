import { z } from "zod";

// Compiling a checker for each schema costs more than it ever saves here: most are used a few times.
z.config({ jitless: true });
